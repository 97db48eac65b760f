/**
 * Real money moves only in environments of type production (docs/integrations/README.md, "Connections"): live
 * credentials are refused elsewhere, and test credentials in production.
 */
import { notAllowed } from '../../foundation/error.ts';

type CredentialsUse = {
  readonly provider_type: string;
  /** Whether the credentials move real money; null if the keys of the provider do not show it. */
  readonly is_live: boolean | null;
  readonly environment_type: 'development' | 'production';
};

export function checkLive({ provider_type, is_live, environment_type }: CredentialsUse): void {
  if (is_live === null || is_live === (environment_type === 'production')) return;
  const field = `encrypted_secret_data.${provider_type}`;
  const why = is_live
    ? 'live credentials need an environment of type production'
    : 'test credentials are refused in an environment of type production';
  throw notAllowed(`${field}: ${why}`, { field, environment_type });
}
