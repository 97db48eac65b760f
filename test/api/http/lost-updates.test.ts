// ETag and If-Match: which conditions are taken, and that of several changes with one tag one is done (docs/rules/records.md,
// "Lost updates"). What each kind of record answers is in test/api/changes.test.ts and test/interface/examples.test.ts.
import { expect } from 'chai';
import { startTestApi, type TestApi } from '../../support/api.ts';

describe('a change with If-Match', () => {
  let api: TestApi;
  let path: string;
  let read: string;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());
  beforeEach(async () => {
    const made = await api.request('POST', '/plans', { body: { name: 'Pro' } });
    path = `/plans/${made.body.id}`;
    read = made.headers.get('etag')!;
  });

  type Answer = { code?: string; name?: string; details?: { field?: string } };
  const send = (method: string, condition?: string, body?: unknown) =>
    api.request<Answer>(method, path, {
      ...(body === undefined ? {} : { body }),
      headers: condition === undefined ? {} : { 'if-match': condition },
    });
  const rename = (condition: string, name = 'Max') => send('PUT', condition, { name });

  it('answers one tag of a record to who makes, reads and changes it', async () => {
    expect((await send('GET')).headers.get('etag')).to.equal(read);
    const changed = await rename(read);
    expect([changed.status, changed.body.name]).to.deep.equal([200, 'Max']);
    expect(changed.headers.get('etag')).to.not.equal(read);
    expect((await send('GET')).headers.get('etag')).to.equal(changed.headers.get('etag'));
  });

  const rows: [what: string, condition: (tag: string) => string, status: number, code?: string][] = [
    ['*', () => '*', 200],
    ['several tags, one of which is true', (tag) => `"a,b" , ${tag},"c"`, 200],
    ['several tags, none of which is true', () => '"a", "b"', 409, 'version_conflict'],
    ['a weak tag, which never matches', (tag) => `W/${tag}`, 409, 'version_conflict'],
    ['a weak tag beside the true one', (tag) => `W/"a", ${tag}`, 200],
    ['no tag', () => ', ,', 400, 'validation_error'],
    ['a tag without quotation marks', (tag) => tag.slice(1, -1), 400, 'validation_error'],
    ['two tags without a comma', (tag) => `${tag} "b"`, 400, 'validation_error'],
    ['* beside a tag', (tag) => `*, ${tag}`, 400, 'validation_error'],
  ];
  for (const [what, condition, status, code] of rows)
    it(`${status} for ${what}`, async () => {
      const answer = await rename(condition(read));
      expect([answer.status, answer.body.code], answer.text).to.deep.equal([status, code]);
      if (code !== undefined) expect(answer.body.details!.field).to.equal('If-Match');
    });

  it('of several at once, one is done', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const answers = await Promise.all(names.map((name) => rename(read, name)));
    const done = answers.filter(({ status }) => status === 200);
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 409, 409, 409, 409]);
    expect((await send('GET')).body.name).to.equal(done[0]!.body.name);
  });

  it('is refused also where it would change nothing, and where it deletes', async () => {
    expect((await rename('"old"', 'Pro')).body.code).to.equal('version_conflict');
    expect((await send('DELETE', '"old"')).body.code).to.equal('version_conflict');
    expect((await send('DELETE', read)).status).to.equal(200);
  });

  it('404 for a record that is not there, whatever the condition', async () => {
    path = '/plans/none';
    for (const condition of ['*', '"old"']) expect((await rename(condition)).status).to.equal(404);
  });

  it('400 where the operation takes none, so that it is not done without', async () => {
    const answer = await api.request('POST', '/plans', { body: { name: 'x' }, headers: { 'if-match': '*' } });
    expect([answer.status, answer.body.details!.field]).to.deep.equal([400, 'If-Match']);
    expect((await send('GET', '"old"')).status, 'a read has none').to.equal(200);
  });

  it('guards the first change of a setting, too', async () => {
    path = '/settings/invoice_config';
    const unset = (await send('GET')).headers.get('etag')!;
    const change = (condition: string) => send('PUT', condition, { value: { prefix: 'ACME' } });
    expect((await change('"old"')).body.code).to.equal('version_conflict');
    const first = await change(unset);
    expect(first.status, first.text).to.equal(200);
    expect((await change(unset)).body.code).to.equal('version_conflict');
    expect((await send('GET')).headers.get('etag')).to.equal(first.headers.get('etag'));
    const all = await api.request('GET', '/settings');
    const found = all.body.items.find(({ key }) => key === 'invoice_config')!;
    expect(found.value).to.include({ prefix: 'ACME', suffix_length: 5 });
  });
});
