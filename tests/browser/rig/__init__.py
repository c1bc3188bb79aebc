"""What the tests of the console stand on: throw-away services, receivers, databases, and browsers that watch what they load."""
