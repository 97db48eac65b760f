/**
 * The instant of a request: that of the clock of its environment where it has one, else that of the machine
 * (docs/rules/clock.md, "What goes by it"). While the clock advances nothing else is written in its environment.
 */
import { waitBeforeRequest } from '../../actions/test-clocks/wait-for-log.ts';
import { toAdvancingError } from '../../core/test-clock/record.ts';
import { type EnvironmentClock, loadClock } from '../../storage/environment-clock.ts';
import type { Access, Context } from './route.ts';

/** Keys, people, deliveries and the clock itself are of the world in which the service runs, and go by its clock. */
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

/** Null where the machine's clock is meant. */
export async function loadRequestClock({
  access,
  scope,
  services,
  response,
  received_at,
}: ClockedRequest): Promise<EnvironmentClock | null> {
  const [entity, action] = access.split(':') as [string, string];
  if (scope.environment_id === '' || OF_THE_MACHINE.has(entity)) return null;
  const clock = await loadClock(services.postgres, scope, received_at.getTime());
  if (clock?.test_clock_status !== 'advancing' || action === 'read') return clock;
  response.set('Retry-After', '1');
  throw toAdvancingError(clock);
}

/** What may end a period, or compute what one costs. */
const INVOICING: ReadonlySet<string> = new Set(['subscription:write', 'invoice:write']);

/**
 * A clock that stands does not say what came before a request, and what after it: what was accepted before is counted first, so that the
 * same requests make the same invoices (docs/rules/clock.md, "Complete").
 */
export async function waitForPriorEvents({ access }: { readonly access: Access }, context: Context): Promise<void> {
  if (context.clock && INVOICING.has(access)) await waitBeforeRequest(context.services, context.scope);
}
