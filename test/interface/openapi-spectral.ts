/**
 * Spectral, with all of its rules for OpenAPI, finds nothing in the document. It compiles the shape of each example with all that it refers
 * to: some fifty seconds of a core, so that this is no part of `npm test`, but a step of .ci/run.
 */
import { type RulesetDefinition, Spectral } from '@stoplight/spectral-core';
import { oas } from '@stoplight/spectral-rulesets';
import { expect } from 'chai';
import { openApiDocument } from '../../api/http/openapi.ts';
import { routes } from '../../api/resources.ts';

// Both packages describe one shape, in types of their own.
const ALL = oas as unknown as RulesetDefinition;

describe('Spectral', function () {
  this.timeout(600_000);
  const spectral = new Spectral();
  // Who runs an installation is asked, and the document does not know who that is. The license has an identifier, and may not have both.
  spectral.setRuleset({ extends: [[ALL, 'all']], rules: { 'info-contact': 'off', 'license-url': 'off' } });

  async function problemsOf(document: object): Promise<string[]> {
    const problems = await spectral.run(JSON.parse(JSON.stringify(document)));
    return problems.map(({ code, path, message }) => `${code} ${path.join('.')}: ${message}`);
  }

  it('finds nothing in the OpenAPI document', async () => {
    expect(await problemsOf(openApiDocument(routes))).to.deep.equal([]);
  });

  it('finds an example that is not of its shape', async () => {
    const [route] = routes.filter(({ operation_id }) => operation_id === 'createPlan');
    const document = openApiDocument([{ ...route!, example: { body: { name: 1 } } }]);
    expect((await problemsOf(document)).join('\n')).to.match(
      /oas3-valid-media-example .*"name" property type must be string/,
    );
  });
});
