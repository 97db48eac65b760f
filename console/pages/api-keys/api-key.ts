import type { components } from '../../client/openapi.d.ts';

export type ApiKey = components['schemas']['SecretResponse'];
