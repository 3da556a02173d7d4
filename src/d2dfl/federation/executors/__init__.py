"""How local steps are computed: one device after another, stacked, or as one dense product."""
