/** Types and helpers for tests that read the OpenAPI document. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

export type ApiSchema = {
  $ref?: string;
  type?: string | string[];
  description?: string;
  example?: Json;
  default?: Json;
  enum?: Json[];
  required?: string[];
  properties?: Record<string, ApiSchema>;
  items?: ApiSchema;
  additionalProperties?: ApiSchema | boolean;
  anyOf?: ApiSchema[];
  oneOf?: ApiSchema[];
  allOf?: ApiSchema[];
};

export type ApiParameter = {
  name: string;
  in: string;
  description?: string;
  required?: boolean;
  schema: ApiSchema;
  example?: Json;
};

export type ApiContent = { content?: Record<string, { schema: ApiSchema; example?: Json }> };

export type ApiOperation = {
  operationId: string;
  summary: string;
  description?: string;
  parameters?: ApiParameter[];
  requestBody?: ApiContent;
  responses: Record<string, ApiContent & { $ref?: string }>;
  'x-codeSamples'?: Json;
};

export type ApiDocument = {
  openapi: string;
  info: Json;
  security: Json;
  paths: Record<string, Record<string, ApiOperation>>;
  components: {
    schemas: Record<string, ApiSchema>;
    responses: Record<string, ApiContent>;
    securitySchemes: Record<string, Json>;
  };
};

/** Finds the schema to which a reference points. */
export function followReference({ components }: ApiDocument, reference: string): ApiSchema {
  return components.schemas[reference.split('/').at(-1)!]!;
}
