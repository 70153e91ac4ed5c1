"""Files of any store Spark can reach, and the clock that waits between looks at them."""
