"""The sections of a configuration, one dataclass each: a field, its default, its help, its bounds."""
