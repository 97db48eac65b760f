import { type TestClock, testClockShape } from '../../../core/platform/test-clock/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface TestClockModel extends TestClock {}

export class TestClockModel extends ScopedModel {
  static override tableName = 'test_clocks';
  static override recordName = 'test clock';
  /** The clock and its workflows name their authors; users do not change its progress. */
  static override isAudited = false;
  static override record = testClockShape;

  /** The only worker of the current advance; empty if there were several, null before the first and after it has finished. */
  declare worker: string | null;
  /** Whether the advance began at the instant at which the previous one failed. */
  declare is_at_failure: boolean;
}
