"""graphduel's own two engines, as one adapter among the others."""
