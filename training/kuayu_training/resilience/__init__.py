"""What the profile of resilience is compared with, and what of it is learned."""
