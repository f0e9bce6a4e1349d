// Plans and events: when extensions are asked what to download, and which of them are being asked.
package import AssetsModel

extension Database {
    func save(_ plan: PeriodicPlan, of app: String) throws(StoreError) {
        try run(.savePlan) { row throws(StoreError) in
            try row.bind(app, at: 1)
            try row.bind(plan.lastUse.wholeMicroseconds, at: 2)
            try row.bind(plan.lastCheck.wholeMicroseconds, at: 3)
            try row.bind(plan.due.wholeMicroseconds, at: 4)
        }
    }

    func open(_ event: ContentEvent) throws(StoreError) {
        try run(.openEvent) { row throws(StoreError) in
            try row.bind(event.app, at: 1)
            try row.bind(Int64(event.request.rawValue), at: 2)
            try row.bind(event.origin.rawValue, at: 3)
            try row.bind(event.manifest, at: 4)
        }
    }
}

extension Store {
    /// The plans of all apps, by bundle id.
    package func plans() throws(StoreError) -> [String: PeriodicPlan] {
        let rows = try opened().rows(.plans) { row throws(StoreError) in
            (
                row.text(at: 0),
                PeriodicPlan(
                    lastUse: .microseconds(row.int64(at: 1)), lastCheck: .microseconds(row.int64(at: 2)),
                    due: .microseconds(row.int64(at: 3)))
            )
        }
        return Dictionary(uniqueKeysWithValues: rows)
    }

    /// Events that are not over, by bundle id.
    package func events() throws(StoreError) -> [String: ContentEvent] {
        let rows = try opened().rows(.events) { row throws(StoreError) in
            guard let request = ContentRequest(rawValue: Int(row.int64(at: 1))),
                let origin = ContentEvent.Origin(rawValue: row.text(at: 2))
            else { throw StoreError(.corrupt, "read the event of \(row.text(at: 0)): a value is unknown") }
            return ContentEvent(app: row.text(at: 0), request: request, origin: origin, manifest: row.text(at: 3))
        }
        return Dictionary(uniqueKeysWithValues: rows.map { ($0.app, $0) })
    }
}
