-- Expired timers are rare among millions of completed ones, and found at once, as failed and canceled ones are.
CREATE INDEX outcome_expired ON outcome (id) WHERE status = 'expired';
