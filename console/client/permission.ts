/** The permissions that a deed needs, and the reason that blocks it for a user without them. */
import { useQuery } from '@tanstack/react-query';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { type CurrentSession, can, sessionQuery, useSession } from './session.ts';

/** Permission of the API that a deed of the console needs, such as `plan:write`. */
export type NeededPermission = keyof typeof EN_DEEDS;
/** Permissions of a deed; null for a deed on the user's own account. */
export type Needs = NeededPermission | readonly NeededPermission[] | null;

/** The reason why the roles do not allow a deed, as a sentence; null if they do. */
export function useMayNot(needs: Needs): string | null {
  const texts = useTexts(TEXTS);
  const { data: session } = useQuery({ ...sessionQuery, enabled: needs !== null });
  return needs === null || !session ? null : explainMissing(session, needs, texts);
}

/** Returns a function that finds the reason why the roles do not allow a deed; null if they do. It serves lists of deeds. */
export function useFindMayNot(): (needs: NeededPermission) => string | null {
  const texts = useTexts(TEXTS);
  const session = useSession();
  return (needs) => explainMissing(session, needs, texts);
}

type MayNotTexts = { readonly mayNot: (permission: NeededPermission) => string };

function explainMissing(session: CurrentSession, needs: NonNullable<Needs>, { mayNot }: MayNotTexts): string | null {
  const missing = [needs].flat().find((permission) => {
    const [resource, action] = permission.split(':') as [string, string];
    return !can(session, resource, action);
  });
  return missing === undefined ? null : mayNot(missing);
}

const EN_DEEDS = {
  'ai:write': 'generate catalogues',
  'creditgrant:write': 'change the credits of a plan',
  'customer:write': 'change customers',
  'entitlement:write': 'change entitlements',
  'environment:write': 'change environments',
  'event:correct': 'correct events',
  'event:read': 'read events',
  'event:write': 'send events',
  'invoice:write': 'change invoices',
  'meter:write': 'change meters',
  'payment:write': 'record payments',
  'plan:write': 'change plans',
  'price:write': 'change prices',
  'secret:write': 'change API keys',
  'setting:write': 'change settings',
  'subscription:write': 'change subscriptions',
  'task:read': 'export',
  'tax:write': 'change taxes',
  'tenant:write': 'change the company',
  'test_clock:write': 'advance test clocks',
  'user:write': 'change users',
  'wallet:write': 'change wallets',
  'webhook:write': 'change webhooks',
} as const;
const DE_DEEDS: Readonly<Record<NeededPermission, string>> = {
  'ai:write': 'keine Kataloge erzeugen',
  'creditgrant:write': 'das Guthaben eines Tarifs nicht ändern',
  'customer:write': 'keine Kunden ändern',
  'entitlement:write': 'keine Leistungen ändern',
  'environment:write': 'keine Umgebungen ändern',
  'event:correct': 'keine Ereignisse berichtigen',
  'event:read': 'keine Ereignisse lesen',
  'event:write': 'keine Ereignisse senden',
  'invoice:write': 'keine Rechnungen ändern',
  'meter:write': 'keine Zähler ändern',
  'payment:write': 'keine Zahlungen erfassen',
  'plan:write': 'keine Tarife ändern',
  'price:write': 'keine Preise ändern',
  'secret:write': 'keine API-Schlüssel ändern',
  'setting:write': 'keine Einstellungen ändern',
  'subscription:write': 'keine Abonnements ändern',
  'task:read': 'nicht exportieren',
  'tax:write': 'keine Steuern ändern',
  'tenant:write': 'die Angaben zum Unternehmen nicht ändern',
  'test_clock:write': 'keine Testuhren vorstellen',
  'user:write': 'keine Benutzer ändern',
  'wallet:write': 'kein Guthaben ändern',
  'webhook:write': 'keine Webhooks ändern',
};

const TEXTS = defineTexts(
  { mayNot: (permission: NeededPermission) => `Your role may not ${EN_DEEDS[permission]}.` },
  { de: { mayNot: (permission) => `Ihre Rolle darf ${DE_DEEDS[permission]}.` } },
);
