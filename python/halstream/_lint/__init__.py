"""`halstream lint`: what of a program's stream code the packages it is written for do not have."""
