"""Functions as handlers of jobs: what is known of each, and how its arguments become a payload and back."""
