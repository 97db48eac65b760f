/**
 * A sheet at the side of a page. From 1,280 px it stands beside the page, below it lies over it, and below 640 px it is the page. It is
 * open while its search parameter stands in the URL, so that an open sheet is a link.
 */
import { useFocusTrap, useMediaQuery, useMergedRef } from '@mantine/hooks';
import { type ReactNode, useEffect, useId, useRef } from 'react';
import { defineTexts, useTexts } from '../texts/texts.ts';
import styles from './side-sheet.module.css';

type SideSheetProps = {
  title: ReactNode;
  subtitle?: ReactNode;
  onClose: () => void;
  /** Actions at the foot. */
  footer?: ReactNode;
  children: ReactNode;
};

export function SideSheet({ title, subtitle, onClose, footer, children }: SideSheetProps): ReactNode {
  const texts = useTexts(TEXTS);
  const isOver = useMediaQuery('(max-width: 1279px)', window.innerWidth < 1280, { getInitialValueInEffect: false });
  const trap = useFocusTrap(isOver);
  const own = useRef<HTMLDivElement>(null);
  const sheet = useMergedRef(trap, own);
  const heading = useId();
  useEffect(() => {
    // Focus returns to the figure that opened the sheet.
    const opener = document.activeElement;
    own.current?.focus({ preventScroll: true });
    return () => {
      if (opener instanceof HTMLElement) opener.focus({ preventScroll: true });
    };
  }, []);
  return (
    <>
      {isOver && <div className={styles.cover} onClick={onClose} aria-hidden="true" />}
      <div
        ref={sheet}
        className={styles.sheet}
        tabIndex={-1}
        role={isOver ? 'dialog' : 'complementary'}
        aria-modal={isOver || undefined}
        aria-labelledby={heading}
        onKeyDown={(event) => {
          if (event.key === 'Escape') onClose();
        }}
      >
        <div className={styles.head}>
          <h2 id={heading}>{title}</h2>
          <button type="button" className={styles.close} onClick={onClose} aria-label={texts.close}>
            esc
          </button>
        </div>
        {subtitle !== undefined && <p className={styles.subtitle}>{subtitle}</p>}
        <div className={styles.body}>{children}</div>
        {footer !== undefined && <div className={styles.footer}>{footer}</div>}
      </div>
    </>
  );
}

/** A page with a sheet beside it. */
export function WithSheet({ children, sheet }: { children: ReactNode; sheet: ReactNode }): ReactNode {
  return (
    <div className={sheet ? styles.split : undefined}>
      <div className={styles.page}>{children}</div>
      {sheet}
    </div>
  );
}

const TEXTS = defineTexts({ close: 'Close, esc' }, { de: { close: 'Schließen, esc' } });
