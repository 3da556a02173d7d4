"""The compiled state that learners move in: links, counts, rewards, kept up to date move by move."""
