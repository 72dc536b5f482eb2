"""Where one engine overtakes the other: chains of ops over a grid of tensor size and depth."""
