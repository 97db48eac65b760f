/**
 * Records in an environment without a clock start at an instant of the machine, so no test clock may be created there before the
 * transaction of the records ends. The shared lock taken here delays the creation of a clock, which locks the environment
 * (actions/schedule/test-clocks/create-test-clock.ts) and then finds the records.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { toClockCreatedError } from '../../../core/platform/test-clock/record.ts';
import { currentRequestContext } from '../../foundation/request-context.ts';
import type { Database } from '../../foundation/stores.ts';
import { EnvironmentModel } from '../foundation/environment.ts';
import { TestClockModel } from './test-clock.ts';

export async function lockNoClock(scope: Scope, transaction: Database): Promise<void> {
  const context = currentRequestContext();
  if (!context || context.clock) return;
  const { tenant_id, environment_id } = scope;
  await EnvironmentModel.fetch(tenant_id, environment_id, { database: transaction, lock: 'shared' });
  const [clock] = await TestClockModel.in(scope, transaction).select('id').limit(1);
  if (clock) throw toClockCreatedError(clock);
}
