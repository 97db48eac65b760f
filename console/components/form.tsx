/** Forms: a deed of the API with its state. An error that names a field stands at that field, any other above the button. */
import { type UseMutationResult, useMutation } from '@tanstack/react-query';
import type { MouseEvent, ReactNode } from 'react';
import { type Needs, useMayNot } from '../client/permission.ts';
import { showApiText } from './api-text.ts';
import { Button } from './button.tsx';
import styles from './confirm.module.css';
import { findFieldError } from './field-errors.ts';

export type Deed<Input, Output> = UseMutationResult<Output, Error, Input>;

export function useDeed<Input, Output>(
  run: (input: Input) => Promise<Output>,
  onDone?: (output: Output) => unknown,
): Deed<Input, Output> {
  return useMutation<Output, Error, Input>({
    mutationFn: run,
    onSuccess: async (output) => {
      await onDone?.(output);
    },
  });
}

/** Stops the form at the first input whose text is not a number, because the request would lack its value. */
function stopAtUnread(event: MouseEvent<HTMLButtonElement>): void {
  const unread = event.currentTarget.form?.querySelector<HTMLInputElement>('input[data-unread]');
  if (!unread) return;
  event.preventDefault();
  const part = unread.closest('details');
  if (!part || part.open) return unread.focus();
  // The page opens the part in a later render.
  part.addEventListener('toggle', () => unread.focus(), { once: true });
  part.querySelector('summary')?.click();
}

/** `fields` are those that show their errors themselves. `needs` are the permissions of the deed, without which its button is blocked. */
export function FormFoot({
  deed,
  needs,
  fields = [],
  action,
  blocked,
  children,
}: {
  deed: { error: Error | null; isPending: boolean };
  needs: Needs;
  fields?: readonly string[];
  action: string;
  blocked?: ReactNode;
  children?: ReactNode;
}): ReactNode {
  const mayNot = useMayNot(needs);
  const isShown = deed.error !== null && !fields.some((field) => findFieldError(deed, field) !== undefined);
  return (
    <>
      {isShown && (
        <p role="alert" className={styles.error}>
          {deed.error && showApiText(deed.error.message)}
        </p>
      )}
      <div className={styles.actions}>
        {children}
        <Button type="submit" isPrimary isBusy={deed.isPending} blocked={mayNot ?? blocked} onClick={stopAtUnread}>
          {action}
        </Button>
      </div>
    </>
  );
}
