"""What tests of programs and engines may use."""
