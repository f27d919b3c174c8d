"""What numbers are here: enclosures with both ends, notions of privacy, and grades."""
