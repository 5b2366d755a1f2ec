"""Located programs to try things with: worked examples, and random rules."""
