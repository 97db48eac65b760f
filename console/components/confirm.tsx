/** Confirms a deed that cannot be undone: it says what the deed does, in which environment, and may ask for the name of the thing. */
import { Modal, TextInput } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { ApiError } from '../client/client.ts';
import { type Needs, useMayNot } from '../client/permission.ts';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { showApiText } from './api-text.ts';
import { Button } from './button.tsx';
import styles from './confirm.module.css';

type ConfirmProps = {
  title: string;
  /** Permissions of the deed, without which its button is blocked. */
  needs: Needs;
  /** Consequences of the deed, in sentences. */
  children: ReactNode;
  /** The verb on the button: "Void invoice". */
  action: string;
  /** Text that the reader must type for a deed that cannot be undone. */
  typed?: string;
  isDangerous?: boolean;
  onConfirm: () => Promise<unknown>;
  onClose: () => void;
};

export function Confirm({
  title,
  needs,
  children,
  action,
  typed,
  isDangerous = false,
  onConfirm,
  onClose,
}: ConfirmProps): ReactNode {
  const texts = useTexts(TEXTS);
  const mayNot = useMayNot(needs);
  const [text, setText] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const confirm = async () => {
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      onClose();
    } catch (failure) {
      setError(failure instanceof ApiError || failure instanceof Error ? failure.message : String(failure));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Modal opened onClose={onClose} title={title} closeButtonProps={{ 'aria-label': texts.close }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void confirm();
        }}
      >
        <div className={styles.words}>{children}</div>
        {typed !== undefined && (
          <TextInput
            mt="md"
            label={texts.type(typed)}
            value={text}
            onChange={({ currentTarget }) => setText(currentTarget.value)}
            autoComplete="off"
            data-autofocus
          />
        )}
        {error !== null && (
          <p role="alert" className={styles.error}>
            {showApiText(error)}
          </p>
        )}
        <div className={styles.actions}>
          <Button onClick={onClose}>{texts.close}</Button>
          <Button
            type="submit"
            isPrimary={!isDangerous}
            isDangerous={isDangerous}
            isBusy={isBusy}
            blocked={mayNot ?? (typed !== undefined && text !== typed ? texts.typeFirst(typed) : null)}
          >
            {action}
          </Button>
        </div>
      </form>
    </Modal>
  );
}

const TEXTS = defineTexts(
  {
    close: 'Close',
    type: (typed: string) => `Type ${typed} to confirm`,
    typeFirst: (typed: string) => `First type ${typed}`,
  },
  {
    de: {
      close: 'Schließen',
      type: (typed) => `Zur Bestätigung ${typed} eingeben`,
      typeFirst: (typed) => `Zuerst ${typed} eingeben`,
    },
  },
);
