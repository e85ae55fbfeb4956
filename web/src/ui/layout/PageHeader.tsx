/** Page header: title, description and actions. */
import { useEffect, type ReactNode } from "react";
import { Link } from "../../router";
import { Icon } from "../icons";

interface PageHeaderProps {
  title: string;
  /** Heading to show instead of the plain title. */
  heading?: ReactNode;
  about?: ReactNode;
  back?: { to: string; name: string };
  actions?: ReactNode;
}

export function PageHeader({ title, heading, about, back, actions }: PageHeaderProps) {
  useEffect(() => {
    document.title = `${title} · rota`;
  }, [title]);
  return (
    <div className="page-head">
      <div className="titles">
        {back && (
          <Link to={back.to} className="crumb">
            <Icon name="left" /> {back.name}
          </Link>
        )}
        <h1 className="hostile">{heading ?? title}</h1>
        {about && <p className="hostile">{about}</p>}
      </div>
      {actions && <div className="row">{actions}</div>}
    </div>
  );
}

/** Section of a page with a title. */
export function Card({ title, actions, children, bare = false }: { title?: ReactNode; actions?: ReactNode; children: ReactNode; bare?: boolean }) {
  return (
    <section className="card">
      {title !== undefined && (
        <header>
          <h2>{title}</h2>
          {actions && <div className="row">{actions}</div>}
        </header>
      )}
      {bare ? children : <div className="inside">{children}</div>}
    </section>
  );
}

/** List of names and values in two columns. */
export function Facts({ items }: { items: ([name: string, value: ReactNode] | false | null | undefined)[] }) {
  return (
    <dl className="facts">
      {items.map(
        (item) =>
          item && (
            <div key={item[0]} style={{ display: "contents" }}>
              <dt>{item[0]}</dt>
              <dd>{item[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
