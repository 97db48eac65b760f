/** A checkout of another commit in a temporary folder, with its dependencies, to be measured beside this one. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export type Checkout = { readonly root: string; readonly name: string; remove(): void };

export const THIS_CHECKOUT: Checkout = {
  root: fileURLToPath(new URL('..', import.meta.url)),
  name: 'this checkout',
  remove: () => {},
};

/** `commit` may also be the folder of a checkout with its dependencies, which stays. */
export function checkOut(commit: string): Checkout {
  if (existsSync(join(commit, 'package.json'))) return { root: commit, name: commit, remove: () => {} };
  const git = (...args: string[]) => execFileSync('git', args, { cwd: THIS_CHECKOUT.root, stdio: 'pipe' });
  const folder = mkdtempSync(join(tmpdir(), 'farthing-against-'));
  // For root, Postgres runs as another user, which must reach its program.
  chmodSync(folder, 0o755);
  const root = join(folder, 'checkout');
  const remove = () => {
    git('worktree', 'remove', '--force', root);
    rmSync(folder, { recursive: true, force: true });
  };
  git('worktree', 'add', '--detach', root, commit);
  try {
    installDependencies(root);
  } catch (error) {
    remove();
    throw error;
  }
  return { root, name: commit, remove };
}

/** Links the dependencies of this checkout if the commit has locked the same ones. */
function installDependencies(root: string): void {
  const read = (folder: string) => readFileSync(join(folder, 'package-lock.json'), 'utf8');
  if (read(root) === read(THIS_CHECKOUT.root))
    symlinkSync(join(THIS_CHECKOUT.root, 'node_modules'), join(root, 'node_modules'));
  else execFileSync('npm', ['ci', '--prefer-offline', '--omit=dev'], { cwd: root, stdio: 'inherit' });
}
