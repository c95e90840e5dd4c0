"""The exporters that the suite plays: pages rendered from a truth that only the suite knows."""
