/**
 * Checks requests to Xero and its answers strictly against its OpenAPI document, which is not a part of this repository: unknown fields,
 * parameters and headers are faults, and so are fields of a request that only Xero sets.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { parse } from 'yaml';

export const XERO_DOCUMENT = join(import.meta.dirname, '../../../../shared/data/providers/xero_accounting.yaml');

type Schema = { readonly [keyword: string]: unknown };
type Parameter = { readonly in: string; readonly name: string; readonly required?: boolean; readonly schema: Schema };
type Content = { readonly content?: { readonly 'application/json'?: { readonly schema: Schema } } };
type Reference = { readonly $ref: string };
type Operation = {
  readonly operationId: string;
  readonly parameters?: readonly (Parameter | Reference)[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content | Reference>>;
};
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>> & Pick<Operation, 'parameters'>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
};

export type XeroCall = {
  readonly method: string;
  /** Path below the base address, such as `/Invoices`. */
  readonly path: string;
  readonly search: URLSearchParams;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Undefined without a body. */
  readonly body: unknown;
};

const KEY_MAX = 128;

export class XeroDocument {
  readonly #document: Document;
  readonly #ajv: Ajv;
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(text: string) {
    this.#document = parse(text) as Document;
    this.#ajv = new Ajv({ strict: false, allErrors: true, validateFormats: true });
    (addFormats as unknown as (ajv: Ajv) => void)(this.#ajv);
    this.#ajv.addFormat('double', { type: 'number', validate: () => true });
  }

  /** Lists the faults of a request, and those of the answer to it. */
  listFaults(call: XeroCall, answer: { readonly status: number; readonly body: unknown }): string[] {
    const found = this.#find(call);
    if (found === null) return [`${call.method} ${call.path} is no operation`];
    const { operation, parameters } = found;
    return [
      ...this.#listParameterFaults(call, parameters),
      ...this.#listBodyFaults(call, operation),
      ...this.#listAnswerFaults(answer, operation),
    ].map((fault) => `${operation.operationId}: ${fault}`);
  }

  #find({ method, path }: XeroCall): { operation: Operation; parameters: readonly Parameter[] } | null {
    for (const [template, item] of Object.entries(this.#document.paths)) {
      const operation = item[method.toLowerCase()];
      if (operation === undefined) continue;
      const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
      const values = new RegExp(`^${template.replace(/\{\w+\}/g, '([^/]+)')}$`).exec(path)?.slice(1);
      if (values === undefined) continue;
      const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map((one) => this.#resolve(one));
      // Two templates may match, such as those of a contact's id and its number: the values decide.
      const isValid = names.every((name, index) => {
        const { schema } = parameters.find((one) => one.in === 'path' && one.name === name)!;
        return this.#validate(schema, decodeURIComponent(values[index]!)).length === 0;
      });
      const isOtherId = template.includes('Number}') && /^[0-9a-f-]{36}$/.test(values.at(-1) ?? '');
      if (isValid && !isOtherId) return { operation, parameters };
    }
    return null;
  }

  #listParameterFaults({ search, headers }: XeroCall, parameters: readonly Parameter[]): string[] {
    const faults: string[] = [];
    for (const [name, text] of search) {
      const parameter = parameters.find((one) => one.in === 'query' && one.name === name);
      if (parameter === undefined) faults.push(`has no parameter ${name}`);
      else faults.push(...this.#validate(parameter.schema, parseParameter(parameter.schema, text)));
    }
    for (const { name, required, schema } of parameters.filter((one) => one.in === 'header')) {
      const value = headers[name.toLowerCase()];
      if (value === undefined && required) faults.push(`lacks the header ${name}`);
      if (value !== undefined) faults.push(...this.#validate(schema, value));
      if (name === 'Idempotency-Key' && String(value ?? '').length > KEY_MAX) faults.push(`${name} is too long`);
    }
    const allowed = parameters.map(({ name }) => name.toLowerCase());
    for (const name of ['idempotency-key', 'if-modified-since', 'xero-tenant-id'])
      if (headers[name] !== undefined && !allowed.includes(name)) faults.push(`has no header ${name}`);
    return faults;
  }

  #listBodyFaults({ body }: XeroCall, { requestBody }: Operation): string[] {
    const schema = requestBody?.content?.['application/json']?.schema;
    if (schema === undefined) return body === undefined ? [] : ['has no body'];
    return this.#validate(schema, body, { omitsReadOnly: true });
  }

  #listAnswerFaults({ status, body }: { status: number; body: unknown }, { responses }: Operation): string[] {
    const found = responses[String(status)];
    // The document declares no failures but those of validation.
    if (found === undefined) return status >= 400 ? [] : [`does not answer ${status}`];
    const schema = this.#resolve(found).content?.['application/json']?.schema;
    return schema === undefined ? [] : this.#validate(schema, body);
  }

  #validate(schema: Schema, value: unknown, { omitsReadOnly = false } = {}): string[] {
    const name = `${omitsReadOnly} ${JSON.stringify(schema)}`;
    const validator = this.#validators.get(name) ?? this.#ajv.compile(this.#close(schema, omitsReadOnly));
    this.#validators.set(name, validator);
    if (validator(value)) return [];
    return (validator.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  }

  /** Copies the schema with all that it refers to. Its objects refuse other fields. */
  #close(schema: Schema, omitsReadOnly: boolean): Schema {
    const definitions: Record<string, unknown> = {};
    const copy = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(copy);
      if (typeof value !== 'object' || value === null) return value;
      const { $ref, properties, example: _, ...others } = value as Record<string, unknown>;
      if (typeof $ref === 'string') {
        const name = $ref.split('/').at(-1)!;
        if (!(name in definitions)) {
          definitions[name] = true;
          definitions[name] = copy(this.#document.components['schemas']![name]);
        }
        return { $ref: `#/definitions/${name}` };
      }
      const copied = Object.fromEntries(Object.entries(others).map(([key, one]) => [key, copy(one)]));
      if (typeof properties !== 'object' || properties === null) return copied;
      const fields = Object.entries(properties).filter(([, one]) => !(omitsReadOnly && (one as Schema)['readOnly']));
      const closed = Object.fromEntries(fields.map(([field, one]) => [field, copy(one)]));
      return { ...copied, properties: closed, additionalProperties: false };
    };
    return { ...(copy(schema) as Schema), definitions };
  }

  #resolve<Value>(value: Value | Reference): Value {
    const { $ref } = value as Partial<Reference>;
    if ($ref === undefined) return value as Value;
    const [kind = '', name = ''] = $ref.split('/').slice(2);
    return this.#document.components[kind]![name] as Value;
  }
}

function parseParameter({ type }: Schema, text: string): unknown {
  if (type === 'array') return text.split(',');
  if (type === 'integer' || type === 'number') return Number(text);
  return type === 'boolean' ? text === 'true' : text;
}

let document: XeroDocument | null | undefined;

/** Reads the document once per process; null if it is not there. */
export function findXeroDocument(): XeroDocument | null {
  document ??= existsSync(XERO_DOCUMENT) ? new XeroDocument(readFileSync(XERO_DOCUMENT, 'utf8')) : null;
  return document;
}
