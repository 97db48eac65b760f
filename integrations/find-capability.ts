/** Finds providers by a capability. */
import type { PushedEntityType } from '../core/platform/integration/pushed-events.ts';
import { PROVIDERS } from './index.ts';
import type { AccountCapability, Exchange, Provider } from './provider.ts';

/** Lists the providers that have a capability: its implementation by the name of the provider. */
export function listCapable<Capability extends keyof Provider>(
  capability: Capability,
): Readonly<Record<string, NonNullable<Provider[Capability]>>> {
  const capable: Record<string, NonNullable<Provider[Capability]>> = {};
  for (const [name, provider] of Object.entries(PROVIDERS)) {
    const found: Provider[Capability] = provider[capability];
    if (found !== undefined) capable[name] = found as NonNullable<Provider[Capability]>;
  }
  return capable;
}

/** Whether a provider receives records of this type. A subscription is received as a deal. */
export function canReceive(
  { exchanges }: Pick<AccountCapability, 'exchanges'>,
  entity_type: PushedEntityType,
): boolean {
  const exchange: Exchange = entity_type === 'subscription' ? 'deal' : entity_type;
  return exchanges.includes(exchange);
}

type Selectable<Settings, Made> = { create(settings: Settings): Made | null };

/**
 * Creates the first provider with the capability that the settings select, in the order of the list; null if they
 * select none.
 */
export function createSelected<Settings, Made>(
  capable: Readonly<Record<string, Selectable<Settings, Made>>>,
  settings: Settings,
): Made | null {
  for (const { create } of Object.values(capable)) {
    const made = create(settings);
    if (made !== null) return made;
  }
  return null;
}
