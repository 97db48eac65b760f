/** Forms: a deed of the API with its state. An error that names a field stands at that field, any other above the button. */
import { type UseMutationResult, useMutation } from '@tanstack/react-query';
import type { MouseEvent, ReactNode } from 'react';
import { ApiError } from '../client/client.ts';
import { type Needs, useMayNot } from '../client/permission.ts';
import { Button } from './button.tsx';
import styles from './confirm.module.css';

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

/** The message of an error for one field of the request; `line_items[0].amount` belongs to `line_items`, too. */
export function findFieldError(deed: { error: Error | null }, field: string): string | undefined {
  const { error } = deed;
  if (!(error instanceof ApiError) || error.field === null) return undefined;
  const rest = error.field.startsWith(field) ? error.field.slice(field.length) : null;
  return rest === '' || rest?.startsWith('.') || rest?.startsWith('[') ? error.message : undefined;
}

/** The message of an error for this very field, without the name of the field, for an input inside a list. */
export function findExactError(error: Error | null, field: string): string | undefined {
  if (!(error instanceof ApiError) || error.field !== field) return undefined;
  return error.message.replace(`${field}: `, '');
}

/** Leads to the first input whose text is not understood, instead of sending the form without its value. */
function stopAtUnread(event: MouseEvent<HTMLButtonElement>): void {
  const unread = event.currentTarget.form?.querySelector<HTMLInputElement>('input[data-unread]');
  if (!unread) return;
  event.preventDefault();
  unread.focus();
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
  blocked?: string | null;
  children?: ReactNode;
}): ReactNode {
  const mayNot = useMayNot(needs);
  const isShown = deed.error !== null && !fields.some((field) => findFieldError(deed, field) !== undefined);
  return (
    <>
      {isShown && (
        <p role="alert" className={styles.error}>
          {deed.error?.message}
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
