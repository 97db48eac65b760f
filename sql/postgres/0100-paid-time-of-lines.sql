-- What was charged in advance and is left without proration stays charged. Of a line that ended so: until when it is charged all the
-- same; null is until its end. Of a line that comes in its place, and is charged from a later instant (charged_from): the lines whose
-- charge pays for the time before, which a later change gives back.
alter table subscription_line_items add column charged_until timestamptz;
alter table subscription_line_items add column paid_by_lines text[];
