-- What is spent begins with nothing in every period: a state belongs to the periods in which it was reached, and this is the begin of the latest of
-- them. Null of what is not spending, and of states from before, which are of the periods in which they were told.
alter table alert_states add column spent_from timestamptz;
