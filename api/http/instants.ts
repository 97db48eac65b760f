/**
 * The instant of a request: the environment's test clock if it has one, else the machine's clock (docs/rules/clock.md, "What goes by it").
 * While the test clock advances, requests that would write in its environment are refused.
 */
import { waitBeforeRequest } from '../../actions/metering/events/wait-for-log.ts';
import { toAdvancingError } from '../../core/platform/test-clock/record.ts';
import { type EnvironmentClock, isByTheMachine, loadClock } from '../../storage/models/schedule/environment-clock.ts';
import type { Access, Context } from './route.ts';

/** Entities on the machine's clock even if the environment has a test clock: keys, users, deliveries and the test clock itself. */
const OF_THE_MACHINE: ReadonlySet<string> = new Set([
  'user',
  'self',
  'tenant',
  'environment',
  'secret',
  'webhook',
  'workflow',
  'audit_log',
  'test_clock',
]);

type ClockedRequest = Pick<Context, 'scope' | 'services' | 'response' | 'received_at'> & { readonly access: Access };

/** Whether the machine's clock applies. False also if this must be loaded. */
export function isRequestByTheMachine({ access, scope, services, received_at }: ClockedRequest): boolean {
  const entity = access.slice(0, access.indexOf(':'));
  if (scope.environment_id === '' || OF_THE_MACHINE.has(entity)) return true;
  return isByTheMachine(services.postgres, scope, received_at.getTime());
}

/** Loads the test clock of the environment; null if it has none. */
export async function loadRequestClock({
  access,
  scope,
  services,
  response,
  received_at,
}: ClockedRequest): Promise<EnvironmentClock | null> {
  const action = access.slice(access.indexOf(':') + 1);
  const clock = await loadClock(services.postgres, scope, received_at.getTime());
  if (clock?.test_clock_status !== 'advancing' || action === 'read') return clock;
  response.set('Retry-After', '1');
  throw toAdvancingError(clock);
}

/** Permissions of requests that may end a period or compute its cost. */
const INVOICING: ReadonlySet<string> = new Set(['subscription:write', 'invoice:write']);

/**
 * Between two advances of a test clock, all events and requests have its instant, so times do not show their order. The request therefore
 * waits until all earlier events are counted, so that equal requests make equal invoices (docs/rules/clock.md, "Complete").
 */
export async function waitForPriorEvents({ access }: { readonly access: Access }, context: Context): Promise<void> {
  if (context.clock && INVOICING.has(access)) await waitBeforeRequest(context.services, context.scope);
}
