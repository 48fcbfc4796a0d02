"""What notebooks show of streams, events, graphs, findings and timelines."""
