/**
 * Spectral, with all of its rules for OpenAPI, finds nothing in the document, and each example and default is of its schema. Spectral
 * inlines all references of the schema of an example before it compiles it, which takes two minutes. So its two rules for examples are
 * off, and the same validator checks them here on the document as it is, where a referenced schema is compiled once.
 */
import { type RulesetDefinition, Spectral } from '@stoplight/spectral-core';
import { oas } from '@stoplight/spectral-rulesets';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect } from 'chai';
import { openApiDocument } from '../../api/http/openapi.ts';
import { routes } from '../../api/resources.ts';
import type { ApiDocument, ApiSchema } from '../support/openapi.ts';

// Both packages describe one shape, in types of their own.
const ALL = oas as unknown as RulesetDefinition;
const OFF = {
  // The document does not know the contact of an installation. The license has an identifier, and may not also have an address.
  'info-contact': 'off',
  'license-url': 'off',
  'oas3-valid-media-example': 'off',
  'oas3-valid-schema-example': 'off',
} as const;

// The options that Spectral gives to Ajv.
const AS_SPECTRAL = { strict: false, allowUnionTypes: true, unicodeRegExp: false };
const VALUES = ['example', 'default'];
const NO_SCHEMAS = [...VALUES, 'enum', 'const'];

describe('Spectral', function () {
  this.timeout(600_000);
  const spectral = new Spectral();
  spectral.setRuleset({ extends: [[ALL, 'all']], rules: OFF });

  it('finds nothing in the OpenAPI document', async () => {
    const problems = await spectral.run(plain(openApiDocument(routes)));
    expect(problems.map(({ code, path, message }) => `${code} ${path.join('.')}: ${message}`)).to.deep.equal([]);
  });
});

describe('examples and defaults of the OpenAPI document', function () {
  this.timeout(120_000);

  const document = plain(openApiDocument(routes));

  it('are of their schemas', () => {
    expect(findProblems(document)).to.deep.equal([]);
  });

  it('are those of bodies and of schemas', () => {
    const all = [...findExamples(document)];
    const isInBody = ({ pointer }: Example) => /content\/[^/]*\/example$/.test(pointer);
    const examples = JSON.stringify(document).match(/"example":/g)!;
    expect(all.filter(isInBody)).to.have.length.above(routes.length / 2);
    expect(all.filter(({ pointer }) => pointer.endsWith('/default'))).to.have.length.above(400);
    expect(all.filter(({ pointer }) => pointer.endsWith('/example'))).to.have.length(examples.length);
  });

  it('are found if they are not', () => {
    const [route] = routes.filter(({ operation_id }) => operation_id === 'createPlan');
    const wrong = plain(openApiDocument([{ ...route!, example: { body: { name: 1 } } }]));
    expect(findProblems(wrong).join('\n')).to.match(/requestBody.*\/example: \/name must be string/);
    wrong.components.schemas.Wrong = { type: 'string', format: 'date-time', default: 'yesterday' } as ApiSchema;
    expect(findProblems(wrong)).to.include('/components/schemas/Wrong/default:  must match format "date-time"');
  });
});

function plain(document: object): ApiDocument {
  return JSON.parse(JSON.stringify(document));
}

/** Lists the examples and defaults that do not match their schemas, with the reason. */
function findProblems(document: ApiDocument): string[] {
  // Formats that belong to us, such as `YYYYMM`, are annotations.
  const ajv = new Ajv2020({ ...AS_SPECTRAL, inlineRefs: false, code: { optimize: false }, logger: false });
  addFormats.default(ajv);
  ajv.addSchema(document, 'openapi', false, false);
  return [...findExamples(document)].flatMap(({ pointer, schema, value }) => {
    const validate = ajv.getSchema(`openapi#${encodeURI(schema)}`)!;
    if (validate(value)) return [];
    return validate.errors!.map(({ instancePath, message }) => `${pointer}: ${instancePath} ${message}`);
  });
}

type Example = { pointer: string; schema: string; value: unknown };

/** The schema of an example is in the same object (`schema`), or is that object. */
function* findExamples(node: unknown, pointer = ''): Generator<Example> {
  if (typeof node !== 'object' || node === null) return;
  const walked = node as Record<string, unknown>;
  for (const key of VALUES)
    if (key in walked)
      yield {
        pointer: `${pointer}/${key}`,
        schema: walked.schema ? `${pointer}/schema` : pointer,
        value: walked[key],
      };
  for (const [key, inner] of Object.entries(walked)) {
    const below = `${pointer}/${escape(key)}`;
    if (key === 'properties')
      for (const [name, one] of Object.entries(inner as object)) yield* findExamples(one, `${below}/${escape(name)}`);
    else if (!NO_SCHEMAS.includes(key)) yield* findExamples(inner, below);
  }
}

function escape(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
