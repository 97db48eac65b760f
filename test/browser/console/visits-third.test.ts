/** Visits every third page of the console, beginning with the third one (test/support/console-visits.ts). */
import { declareVisits } from '../../support/console-visits.ts';

declareVisits(2);
