/** The permissions that a deed needs, and the reason that blocks it for a user without them. */
import { useQuery } from '@tanstack/react-query';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { type CurrentSession, can, sessionQuery, useSession } from './session.ts';

/** Permission of the API, such as `plan:write`. */
export type NeededPermission = `${string}:${'read' | 'write' | 'correct'}`;
/** Permissions of a deed; null for a deed on the user's own account. */
export type Needs = NeededPermission | readonly NeededPermission[] | null;

/** The reason why the roles do not allow a deed, as a sentence; null if they do. */
export function useMayNot(needs: Needs): string | null {
  const texts = useTexts(TEXTS);
  const { data: session } = useQuery({ ...sessionQuery, enabled: needs !== null });
  return needs === null || !session ? null : explainMissing(session, needs, texts);
}

/** As useMayNot, for deeds of a list. */
export function useFindMayNot(): (needs: NeededPermission) => string | null {
  const texts = useTexts(TEXTS);
  const session = useSession();
  return (needs) => explainMissing(session, needs, texts);
}

type MayNotTexts = { readonly mayNot: (permission: string) => string };

function explainMissing(session: CurrentSession, needs: NonNullable<Needs>, { mayNot }: MayNotTexts): string | null {
  const missing = [needs].flat().find((permission) => {
    const [resource, action] = permission.split(':') as [string, string];
    return !can(session, resource, action);
  });
  return missing === undefined ? null : mayNot(missing);
}

const EN_DEEDS: Readonly<Record<string, string>> = {
  'creditgrant:write': 'change credit grants',
  'customer:write': 'change customers',
  'entitlement:write': 'change entitlements',
  'environment:write': 'change environments',
  'event:correct': 'correct events',
  'event:read': 'read events',
  'event:write': 'send events',
  'invoice:read': 'read invoices',
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
  'wallet:write': 'change wallets',
  'webhook:write': 'change webhooks',
};
const DE_DEEDS: typeof EN_DEEDS = {
  'creditgrant:write': 'Gutschriften nicht ändern',
  'customer:write': 'Kunden nicht ändern',
  'entitlement:write': 'Leistungen nicht ändern',
  'environment:write': 'Umgebungen nicht ändern',
  'event:correct': 'Ereignisse nicht berichtigen',
  'event:read': 'Ereignisse nicht lesen',
  'event:write': 'Ereignisse nicht senden',
  'invoice:read': 'Rechnungen nicht lesen',
  'invoice:write': 'Rechnungen nicht ändern',
  'meter:write': 'Zähler nicht ändern',
  'payment:write': 'Zahlungen nicht erfassen',
  'plan:write': 'Tarife nicht ändern',
  'price:write': 'Preise nicht ändern',
  'secret:write': 'API-Schlüssel nicht ändern',
  'setting:write': 'Einstellungen nicht ändern',
  'subscription:write': 'Abonnements nicht ändern',
  'task:read': 'nicht exportieren',
  'tax:write': 'Steuern nicht ändern',
  'wallet:write': 'Guthaben nicht ändern',
  'webhook:write': 'Webhooks nicht ändern',
};

const TEXTS = defineTexts(
  { mayNot: (permission: string) => `Your role may not ${EN_DEEDS[permission] ?? 'do this'}.` },
  { de: { mayNot: (permission) => `Ihre Rolle darf ${DE_DEEDS[permission] ?? 'das nicht'}.` } },
);
