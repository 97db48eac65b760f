/** Table `test_clocks`. */
import { type TestClock, testClockShape } from '../../core/test-clock/record.ts';
import { ScopedModel } from './model.ts';

export interface TestClockModel extends TestClock {}

export class TestClockModel extends ScopedModel {
  static override tableName = 'test_clocks';
  static override recordName = 'test clock';
  /** Who made it and who moved it stands in it and in its workflows; how far it is, is no record that somebody changes. */
  static override isAudited = false;
  static override record = testClockShape;

  /** Which worker advances it, where no other has in this advance; empty where several have, null before the first. */
  declare worker: string | null;
  /** Whether the advance began where the one before it had failed, at an instant to which that had moved. */
  declare is_at_failure: boolean;
}
