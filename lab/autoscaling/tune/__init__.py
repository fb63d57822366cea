"""Which ScaledObject to take: variants of a given one simulated, what each costs and how late it is, and one recommended."""
