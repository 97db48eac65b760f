/** Credentials in a request: an object per provider. Each provider declares its shape. */
import { z } from 'zod';
import { invalid, prefixField } from '../../../core/foundation/error.ts';
import { orNull } from '../../../core/foundation/record.ts';
import { parseShape } from '../../../core/foundation/shaped.ts';
import {
  type ConnectionSecrets,
  NAMED_PROVIDERS,
  type ProviderSecrets,
} from '../../../core/platform/connection/record.ts';
import { PROVIDERS } from '../../../integrations/index.ts';

/** Values of `provider_type` in the API. */
export const PROVIDER_TYPES: readonly string[] = [
  ...new Set([
    ...NAMED_PROVIDERS,
    ...Object.entries(PROVIDERS).flatMap(([name, { account, export_destination }]) =>
      account || export_destination ? [name] : [],
    ),
  ]),
];

const SHAPES: Readonly<Record<string, z.ZodObject>> = Object.fromEntries(
  Object.entries(PROVIDERS).flatMap(([name, { account, export_destination }]) => {
    const shape = account?.secrets ?? export_destination?.secrets;
    return shape ? [[name, shape] as const] : [];
  }),
);

export const connectionSecrets: z.ZodType<ConnectionSecrets> = z.object(
  Object.fromEntries(
    Object.entries(SHAPES).map(([name, shape]) => [
      name,
      orNull(shape).meta({ description: `Credentials of ${name}; required for this provider, refused for others.` }),
    ]),
  ),
);

/** Whether a connection to the provider needs credentials. */
export function hasSecrets(provider_type: string): boolean {
  return Object.hasOwn(SHAPES, provider_type);
}

/** Parses the credentials of one provider, which a request has under `field`. */
export function parseSecrets(
  provider_type: string,
  given: Readonly<Record<string, string>>,
  field: string,
): ProviderSecrets {
  const shape = SHAPES[provider_type];
  if (!shape) throw invalid('provider', `${provider_type} has no credentials here`, { allowed: Object.keys(SHAPES) });
  return parseCredentials(shape, given, field);
}

/** Parses credentials of the given shape, which a request has under `field`. */
export function parseCredentials(
  shape: z.ZodObject,
  given: Readonly<Record<string, string>>,
  field: string,
): ProviderSecrets {
  const allowed = Object.keys(shape.shape);
  const unknown = Object.keys(given).find((key) => !allowed.includes(key));
  if (unknown !== undefined) throw invalid(`${field}.${unknown}`, 'is no key of these credentials', { allowed });
  try {
    return parseShape(shape, given, field);
  } catch (error) {
    throw prefixField(error, field);
  }
}
