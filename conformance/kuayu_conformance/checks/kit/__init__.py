"""What checks share: resources, graphs, least requests and tables."""
