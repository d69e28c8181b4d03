"""Access: who sends a request, what they may do, and the limits for everybody."""
