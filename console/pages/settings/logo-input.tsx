import { type ReactNode, useRef, useState } from 'react';
import { Button } from '../../components/button.tsx';
import { useTexts } from '../../texts/texts.ts';
import { COMPANY_TEXTS } from './company-texts.ts';
import styles from './settings.module.css';

/** A picture as a data URL, as the setting has it. The service decides about its size. */
export function LogoInput({
  logo,
  error,
  onLogo,
}: {
  logo: string | null;
  error: ReactNode;
  onLogo: (logo: string | null) => void;
}): ReactNode {
  const texts = useTexts(COMPANY_TEXTS);
  const input = useRef<HTMLInputElement>(null);
  const [failure, setFailure] = useState<string | null>(null);
  const read = (file: File | undefined) => {
    if (!file) return;
    const reader = new FileReader();
    reader.onload = () => {
      setFailure(null);
      if (typeof reader.result === 'string') onLogo(reader.result);
    };
    reader.onerror = () => setFailure(texts.unreadable);
    reader.readAsDataURL(file);
  };
  return (
    <div role="group" aria-label={texts.logo}>
      <h3>{texts.logo}</h3>
      <p className="label">{texts.logoHint}</p>
      <div className={styles.logo}>
        {logo !== null && <img src={logo} alt={texts.logo} />}
        <Button onClick={() => input.current?.click()}>{logo === null ? texts.chooseLogo : texts.replaceLogo}</Button>
        {logo !== null && <Button onClick={() => onLogo(null)}>{texts.removeLogo}</Button>}
        <input
          ref={input}
          type="file"
          accept="image/png,image/jpeg"
          hidden
          aria-label={texts.logo}
          onChange={({ currentTarget }) => {
            read(currentTarget.files?.[0]);
            currentTarget.value = '';
          }}
        />
      </div>
      {(failure ?? error) && (
        <p role="alert" className={styles.error}>
          {failure ?? error}
        </p>
      )}
    </div>
  );
}
