"""How the papers' experiments are run, kept, tabulated and drawn."""
