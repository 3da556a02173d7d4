"""A file a method: how the links are found."""
