/** Visits every third page of the console, beginning with the first one (test/support/console-visits.ts). */
import { declareVisits } from '../../support/console-visits.ts';

declareVisits(0);
