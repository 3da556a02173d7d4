"""How local steps are computed: device by device, stacked in batched products, or in compiled code for small dense networks."""
