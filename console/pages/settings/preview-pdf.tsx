/** Shows the PDF of a sample invoice under settings that are not saved, in a tab of its own: a page of the console has no frames. */
import { type ReactNode, useEffect, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import type { components } from '../../client/openapi.d.ts';
import { showApiText } from '../../components/api-text.ts';
import { Button } from '../../components/button.tsx';
import { useDeed } from '../../components/form.tsx';
import { defineTexts, useTexts } from '../../texts/texts.ts';
import styles from './settings.module.css';

export type PreviewBody = components['schemas']['PreviewInvoicePdfRequest'];

export function PreviewPdf({ body }: { body: PreviewBody }): ReactNode {
  const texts = useTexts(TEXTS);
  const [made, setMade] = useState<{ address: string; of: string } | null>(null);
  const preview = useDeed(
    async () => readData(api.POST('/invoices/preview/pdf', { body, parseAs: 'blob' })) as Promise<unknown>,
    (pdf) => {
      const address = URL.createObjectURL(pdf as Blob);
      setMade({ address, of: JSON.stringify(body) });
      window.open(address, '_blank');
    },
  );
  // A PDF that is replaced, and the last one of the page, gives its memory free.
  useEffect(() => (made ? () => URL.revokeObjectURL(made.address) : undefined), [made]);
  const isStale = made !== null && made.of !== JSON.stringify(body);
  return (
    <div className={styles.previewFoot}>
      <Button isBusy={preview.isPending} onClick={() => preview.mutate(undefined)}>
        {texts.show}
      </Button>
      {preview.error ? (
        <p role="alert" className={styles.error}>
          {showApiText(preview.error.message)}
        </p>
      ) : made && !isStale ? (
        <span>
          <a href={made.address} target="_blank" rel="noreferrer">
            {texts.open}
          </a>{' '}
          ·{' '}
          <a href={made.address} download="preview.pdf">
            {texts.download}
          </a>
        </span>
      ) : (
        <span className="label">{texts.hint}</span>
      )}
    </div>
  );
}

const TEXTS = defineTexts(
  {
    show: 'Show preview PDF',
    open: 'Open again',
    download: 'Download',
    hint: 'A sample invoice with what stands in the form. Nothing is saved.',
  },
  {
    de: {
      show: 'Vorschau als PDF',
      open: 'Noch einmal öffnen',
      download: 'Herunterladen',
      hint: 'Eine Beispielrechnung mit dem Stand des Formulars. Nichts wird gespeichert.',
    },
  },
);
