"""What the steps of a play do, one module per family of steps; the ``Player`` chooses among them."""
