/** The ground of the console in a browser: sign-in, addresses, preferences, roles, and the tools of a record. */
import { expect } from 'chai';
import { type ConsoleApp, startConsole, waitUntilShown } from '../../support/console.ts';

const PASSWORD = 'correct horse battery';

describe('the ground of the console', function () {
  this.timeout(120_000);
  let app: ConsoleApp;
  before(async () => {
    app = await startConsole();
  });
  after(() => app?.stop());
  afterEach(() => app.closePages());

  it('is opened by the link once, and the link is left nowhere', async () => {
    const { page } = await app.open(app.link, { session: 'none', refusals: [401] });
    await page.getByRole('navigation', { name: 'Main' }).waitFor();
    const token = app.link.split('#link=')[1]!;
    expect(page.url()).to.match(/\/env\/env_\w+$/);
    expect(
      await page.evaluate<string>('JSON.stringify([location.href, history.state, document.cookie])'),
    ).to.not.contain(token);
    await page.goBack();
    expect(page.url()).to.not.contain(token);
  });
});
