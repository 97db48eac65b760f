/**
 * Secrets with which the signature of a webhook is checked. If there is no connection or no webhook secret, random
 * secrets are checked by the same steps. So the response time does not reveal which tenants have a connection.
 */
import { randomBytes } from 'node:crypto';
import type { ProviderSecrets } from '../../../core/platform/connection/record.ts';
import { createSealer, isSealed, type SecretOwner } from '../../../storage/foundation/secrets/sealing.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import type { AccountCallSettings } from '../../foundation/connections/call-account.ts';
import { openConnectionSecrets, sealConnectionSecrets } from '../../foundation/connections/connection-secrets.ts';

type SecretSelection = {
  readonly provider_type: string;
  /** Names of the credentials that sign webhooks. */
  readonly names: readonly string[];
  readonly connection: ConnectionModel | undefined;
  readonly settings: AccountCallSettings;
  readonly onUnreadable: (connection_id: string) => void;
};

/**
 * Returns one secret per name, so that each webhook costs the same checks. The first secret replaces missing ones. `is_known` is false if
 * the secrets are random.
 */
export function selectWebhookSecrets({ connection, ...search }: SecretSelection): {
  secrets: readonly string[];
  is_known: boolean;
} {
  const opened = openSecrets(connection ?? provideDummy(search), search);
  const [current, ...others] = search.names.map((name) => opened?.[name]);
  if (!isText(current)) return { secrets: search.names.map(createRandomSecret), is_known: false };
  const secrets = [current, ...others.map((other) => (isText(other) ? other : current))];
  return { secrets, is_known: connection !== undefined };
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function createRandomSecret(): string {
  return randomBytes(32).toString('hex');
}

type SealedCredentials = SecretOwner & Pick<ConnectionModel, 'provider_type' | 'secret'>;

/** Decrypts the credentials. Null if that fails: the webhook is then refused, not accepted unchecked. */
function openSecrets(
  stored: SealedCredentials,
  { settings, onUnreadable }: Pick<SecretSelection, 'settings' | 'onUnreadable'>,
): ProviderSecrets | null {
  try {
    if (!isSealed(stored.secret)) return null;
    return openConnectionSecrets(stored, createSealer(settings.SECRETS_KEYS));
  } catch {
    onUnreadable(stored.id);
    return null;
  }
}

const dummies = new WeakMap<readonly string[], Map<string, SealedCredentials>>();

/**
 * Returns dummy credentials, encrypted once per process, so that an unknown connection costs the same decryption as a
 * known one.
 */
function provideDummy({
  provider_type,
  names,
  settings: { SECRETS_KEYS },
}: Pick<SecretSelection, 'provider_type' | 'names' | 'settings'>): SealedCredentials {
  const by_provider = dummies.get(SECRETS_KEYS) ?? new Map<string, SealedCredentials>();
  dummies.set(SECRETS_KEYS, by_provider);
  const known = by_provider.get(provider_type);
  if (known) return known;
  const random = Object.fromEntries(names.map((name) => [name, createRandomSecret()]));
  const owner = { tenant_id: '', environment_id: '', id: '', provider_type };
  const dummy = { ...owner, secret: sealConnectionSecrets(random, owner, createSealer(SECRETS_KEYS)) };
  by_provider.set(provider_type, dummy);
  return dummy;
}
