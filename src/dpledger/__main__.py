"""`python -m dpledger`: the command line."""


def main() -> None:
    """Run the command line; its exit status is 0 (good), 1 (a finding) or 2 (a mistake)."""
    from .cli.app import run  # `cli.run` is the module of a command, once that is loaded

    run()


if __name__ == "__main__":
    main()
